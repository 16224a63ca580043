"""`python -m dragoman` is the `dragoman` command; torchrun starts workers this way."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
