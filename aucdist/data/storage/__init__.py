"""Where bytes come from and go to: local files, web servers and S3, with retries and checksums."""
