"""Everything that ranks do together: find each other, exchange gradients, share decisions and files."""
