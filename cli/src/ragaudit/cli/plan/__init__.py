"""What a window will promise and what it will be good for, before it is committed."""
