"""The log of C2SP and where it is stored: nothing here knows what its entries say."""
