"""Oracle Database through python-oracledb."""
