"""Images: arrays and files of pixels."""
