"""Every format that is signed or crosses between parties."""
