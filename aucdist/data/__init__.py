"""Read data sets: storage, formats, labels, preprocessing, splits and shards."""
