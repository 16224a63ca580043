from tests.golden import pages

if __name__ == "__main__":  # the workers of prepare import it as well
    pages.write()
