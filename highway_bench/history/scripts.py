"""The scripts of asv's pages, from npm's packages by version and checksum, so that the pages need no network.

asv's page loads ten files from public networks; offline it shows an error page instead. The packages below hold the
same files. npm fetches and checks them when pages are published, into the ignored working folder; they are never
committed. All are MIT licensed, and their licences are published with them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from highway_bench.history.files import write_text

TAG = re.compile(r'<(script|link)\b[^>]*?(?:src|href)="(https://[^"]+)"[^>]*>')
COMPLETE = ".package-lock.json"  # what npm writes last


class Package(NamedTuple):
    """An npm package: its version, its tarball's SHA-512 in base64 as npm prints it, and its files for asv's page, by
    their names in the page's addresses."""

    version: str
    sha512: str
    files: dict[str, str]


PACKAGES = {
    "jquery": Package(
        "3.3.1",
        "Ubldcmxp5np52/ENotGxlLe6aGMvmF4R8S6tZjsP6Knsaxd/xp3Zrh50cG93lR6nPXyUFwzN3ZSOQI0wRJNdGg==",
        {"jquery-3.3.1.min.js": "dist/jquery.min.js"},
    ),
    "flot": Package(
        "0.8.3",
        "xg2otcTJDvS+ERK+my4wxG/ASq90QURXtoM4LhacCq0jQW2jbyjdttbRNqU2cPykrpMvJ6b2uSp6SAgYAzj9tQ==",
        {
            "jquery.flot.min.js": "jquery.flot.js",
            "jquery.flot.time.min.js": "jquery.flot.time.js",
            "jquery.flot.selection.min.js": "jquery.flot.selection.js",
            "jquery.flot.categories.min.js": "jquery.flot.categories.js",
        },
    ),
    "flot-orderbars": Package(
        "1.0.0",
        "Jv51fvzevUjNXEeozpwEKfPjhiZhfiJddv0WHjduUTCmSF+7T5K7C9c9Y1wIVmUhDBv5fLMjgbwKecT0GIKPZA==",
        {"jquery.flot.orderBars.js": "js/jquery.flot.orderBars.js"},
    ),
    "stupid-table-plugin": Package(
        "1.1.3",
        "2Vk7XouQPxUQPRe9w0Fu7ZZ8kHLK7rDoLMsCgtKxRNJ7f4dSOGvW9CkHsq5wD6QsaEnWoyLBYH3xOEsrK3yWBg==",
        {"stupidtable.min.js": "stupidtable.min.js"},
    ),
    "blueimp-md5": Package(
        "2.19.0",
        "DRQrD6gJyy8FbiE4s+bDoXS9hiW3Vbx5uCdwvcCf3zLHL+Iv7LtGHLpr+GZV8rHG8tK766FGYBwRbu8pELTt+w==",
        {"md5.min.js": "js/md5.min.js"},
    ),
    "bootstrap": Package(
        "3.1.1",
        "TAzqS8E/ISpVHP29gYhy+1NSV+FJwApDVQhDfgLYsIuUDJiqJzH2DfORN5tiu+Ie2iBLrzEG34t4Rf465cigqg==",
        {"bootstrap.min.js": "dist/js/bootstrap.min.js", "bootstrap.min.css": "dist/css/bootstrap.min.css"},
    ),
}


def use_own_scripts(html: Path, cache: Path) -> str | None:
    """Make the published pages in ``html`` load local scripts, from packages in the folder ``cache``.

    Returns ``None``, or the reason why the pages still load them from public networks.
    """
    if reason := fetch(cache):
        return reason
    page, vendor, modules = html / "index.html", html / "vendor", cache / "node_modules"
    text = page.read_text(encoding="utf-8")
    files = {name: modules / of / inside for of, package in PACKAGES.items() for name, inside in package.files.items()}
    unknown = [address for _, address in TAG.findall(text) if address.rpartition("/")[2] not in files]
    if unknown:
        return f"this version of asv loads scripts that highway_bench does not know: {', '.join(unknown)}"
    vendor.mkdir(exist_ok=True)
    for name, file in files.items():
        shutil.copyfile(file, vendor / name)
    for licence in sorted(modules.glob("*/LICEN*")):
        shutil.copyfile(licence, vendor / f"{licence.parent.name}-{licence.name}")

    def local(tag: re.Match[str]) -> str:
        name = tag[2].rpartition("/")[2]
        return (
            f'<script src="vendor/{name}">' if tag[1] == "script" else f'<link rel="stylesheet" href="vendor/{name}">'
        )

    page.write_text(TAG.sub(local, text), encoding="utf-8")
    return None


def fetch(cache: Path) -> str | None:
    """Let npm install the packages into ``cache`` unless they are there; the reason where it cannot."""
    needed = {"dependencies": {name: package.version for name, package in PACKAGES.items()}}
    locked = {
        f"node_modules/{name}": {"version": package.version, "integrity": f"sha512-{package.sha512}"}
        for name, package in PACKAGES.items()
    }
    lock = json.dumps({"lockfileVersion": 3, "packages": {"": needed, **locked}})
    path = cache / "package-lock.json"
    if path.is_file() and path.read_text(encoding="utf-8") == lock and (cache / "node_modules" / COMPLETE).is_file():
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    write_text(cache / "package.json", json.dumps(needed))
    write_text(path, lock)
    try:
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--silent"]
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "npm did not respond"
    return f"npm cannot fetch their packages (status {done.returncode})" if done.returncode else None
