from tests.golden import pages, readme

if __name__ == "__main__":  # the workers of prepare import it as well
    pages.write()
    readme.write()
