-- The role by which the nodes replicate, and ask each other how far they are. Its password comes after
-- that (\password replicator). It reads all that is stored: guard its password as that of postgres.
-- Without a standby no commit would be confirmed; of this one the standbys get a copy.
SET synchronous_commit = local;

CREATE ROLE replicator LOGIN REPLICATION;
-- postgresql-failover: positions of WAL, who streams, a checkpoint before pg_rewind, the lineage.
GRANT pg_monitor, pg_checkpoint TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_file(text) TO replicator;
-- pg_rewind: what PostgreSQL's documentation lists for a role that is no superuser.
GRANT EXECUTE ON FUNCTION pg_ls_dir(text, boolean, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_stat_file(text, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean) TO replicator;
