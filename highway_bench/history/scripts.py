"""The scripts of asv's pages, from npm's packages by name and checksum, so that the pages need no network.

asv's page loads ten files from public networks; offline it shows an error page instead. The packages below hold the
same files. They are fetched when pages are published, cached in the ignored working folder, and never committed. All
are MIT licensed, and their licences are published with them.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from highway_bench.history.archives import extract


@dataclass(frozen=True)
class Package:
    """An npm package: its name with version, its tarball's SHA-512 in base64 as npm prints it, and its files for asv's
    page, by their names in the page's addresses."""

    name: str
    sha512: str
    files: dict[str, str]


PACKAGES = (
    Package(
        "jquery@3.3.1",
        "Ubldcmxp5np52/ENotGxlLe6aGMvmF4R8S6tZjsP6Knsaxd/xp3Zrh50cG93lR6nPXyUFwzN3ZSOQI0wRJNdGg==",
        {"jquery-3.3.1.min.js": "dist/jquery.min.js"},
    ),
    Package(
        "flot@0.8.3",
        "xg2otcTJDvS+ERK+my4wxG/ASq90QURXtoM4LhacCq0jQW2jbyjdttbRNqU2cPykrpMvJ6b2uSp6SAgYAzj9tQ==",
        {
            "jquery.flot.min.js": "jquery.flot.js",
            "jquery.flot.time.min.js": "jquery.flot.time.js",
            "jquery.flot.selection.min.js": "jquery.flot.selection.js",
            "jquery.flot.categories.min.js": "jquery.flot.categories.js",
        },
    ),
    Package(
        "flot-orderbars@1.0.0",
        "Jv51fvzevUjNXEeozpwEKfPjhiZhfiJddv0WHjduUTCmSF+7T5K7C9c9Y1wIVmUhDBv5fLMjgbwKecT0GIKPZA==",
        {"jquery.flot.orderBars.js": "js/jquery.flot.orderBars.js"},
    ),
    Package(
        "stupid-table-plugin@1.1.3",
        "2Vk7XouQPxUQPRe9w0Fu7ZZ8kHLK7rDoLMsCgtKxRNJ7f4dSOGvW9CkHsq5wD6QsaEnWoyLBYH3xOEsrK3yWBg==",
        {"stupidtable.min.js": "stupidtable.min.js"},
    ),
    Package(
        "blueimp-md5@2.19.0",
        "DRQrD6gJyy8FbiE4s+bDoXS9hiW3Vbx5uCdwvcCf3zLHL+Iv7LtGHLpr+GZV8rHG8tK766FGYBwRbu8pELTt+w==",
        {"md5.min.js": "js/md5.min.js"},
    ),
    Package(
        "bootstrap@3.1.1",
        "TAzqS8E/ISpVHP29gYhy+1NSV+FJwApDVQhDfgLYsIuUDJiqJzH2DfORN5tiu+Ie2iBLrzEG34t4Rf465cigqg==",
        {"bootstrap.min.js": "dist/js/bootstrap.min.js", "bootstrap.min.css": "dist/css/bootstrap.min.css"},
    ),
)
TAG = re.compile(r'<(script|link)\b[^>]*?(?:src|href)="(https://[^"]+)"[^>]*>')


class NotFetched(Exception):
    """The scripts could not be fetched; the message is the reason."""


def use_own_scripts(html: Path, cache: Path) -> str | None:
    """Make the published pages in ``html`` load local scripts, from packages in the folder ``cache``.

    Returns ``None``, or the reason why the pages still load them from public networks.
    """
    try:
        for package in PACKAGES:
            fetch(package, cache)
    except NotFetched as reason:
        return str(reason)
    page = html / "index.html"
    text = page.read_text(encoding="utf-8")
    vendor = html / "vendor"
    vendor.mkdir(exist_ok=True)
    files = {name: (package, inside) for package in PACKAGES for name, inside in package.files.items()}
    unknown = [address for _, address in TAG.findall(text) if address.rpartition("/")[2] not in files]
    if unknown:
        return f"this version of asv loads scripts that highway_bench does not know: {', '.join(unknown)}"

    def local(tag: re.Match[str]) -> str:
        name = tag[2].rpartition("/")[2]
        package, inside = files[name]
        shutil.copyfile(_folder(package, cache) / inside, vendor / name)
        if tag[1] == "script":
            return f'<script src="vendor/{name}">'
        return f'<link rel="stylesheet" href="vendor/{name}">'

    page.write_text(TAG.sub(local, text), encoding="utf-8")
    for package in PACKAGES:
        for licence in sorted(_folder(package, cache).glob("LICEN*")):
            shutil.copyfile(licence, vendor / f"{package.name.partition('@')[0]}-{licence.name}")
    return None


def fetch(package: Package, cache: Path) -> None:
    """Unpack ``package`` into ``cache`` unless it is there; raises ``NotFetched``."""
    folder = _folder(package, cache)
    if folder.is_dir():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetched("npm is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        scratch = Path(name)
        try:
            done = subprocess.run(
                [npm, "pack", package.name, "--silent", "--ignore-scripts"],
                cwd=scratch,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotFetched(f"npm did not respond for {package.name}") from None
        balls = list(scratch.glob("*.tgz"))
        if done.returncode or len(balls) != 1:
            raise NotFetched(f"npm cannot fetch {package.name}")
        checksum = base64.b64encode(hashlib.sha512(balls[0].read_bytes()).digest()).decode()
        if checksum != package.sha512:
            raise NotFetched(f"{package.name} has an unexpected checksum ({checksum[:12]}…)")
        with tarfile.open(balls[0]) as ball:
            extract(ball, scratch)
        (scratch / "package").replace(folder)


def _folder(package: Package, cache: Path) -> Path:
    return cache / package.name.replace("@", "-")
