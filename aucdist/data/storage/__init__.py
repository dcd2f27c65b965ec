"""Read and write bytes: local files, web servers and S3, with retries and checksums."""
