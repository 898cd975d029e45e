-- The role with which the nodes replicate and ask each other for their positions. Set its password afterwards
-- (\password replicator). The role can read all data: guard its password like that of postgres.
-- There is no standby yet, so a synchronous commit would wait for ever. The standbys get a copy of this one.
SET synchronous_commit = local;

CREATE ROLE replicator LOGIN REPLICATION;
-- For postgresql-failover: WAL positions, streaming standbys, a checkpoint before pg_rewind, the lineage.
GRANT pg_monitor, pg_checkpoint TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_file(text) TO replicator;
-- For pg_rewind: the functions that PostgreSQL's documentation lists for a role that is no superuser.
GRANT EXECUTE ON FUNCTION pg_ls_dir(text, boolean, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_stat_file(text, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean) TO replicator;
