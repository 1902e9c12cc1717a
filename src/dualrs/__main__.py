"""``python -m dualrs`` is the command line."""

from dualrs.cli import main

if __name__ == "__main__":
    main()
