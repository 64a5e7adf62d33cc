"""``python -m highway_bench``: the command line where its script is not on the path."""

from highway_bench.cli import main

if __name__ == "__main__":  # worker processes import this module under another name
    main()
