"""One module or package per `weft bench NAME`."""
