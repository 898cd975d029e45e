-- The largest token that has written, for each election. A smaller one is refused.
CREATE TABLE fence (election text PRIMARY KEY, token bigint NOT NULL);

-- Call it first in each transaction of the holder. The row stays locked until that transaction ends, so no other
-- holder can write between this check and the writes behind it.
CREATE FUNCTION fence(which text, mine bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fence VALUES (which, mine)
        ON CONFLICT (election) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the fencing token % of % is older than that of the present holder', mine, which;
    END IF;
END $$;
