"""SQL Server through pymssql."""
