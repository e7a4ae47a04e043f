-- Ids made one after the other sort in that order, also within a millisecond: audit entries, webhook endpoints and
-- other rows are listed by their id. As PostgreSQL 18's uuidv7() does, the 12 bits behind the version hold the
-- fraction of the millisecond (RFC 9562, method 3). (`uuid7_floor` rounds to the next millisecond, so it is not used.)
create or replace function duly.uuid7() returns uuid
    language sql volatile parallel safe
    return (
        select (
            lpad(to_hex(c.microseconds / 1000), 12, '0')
            || '7' || lpad(to_hex(c.microseconds % 1000 * 4096 / 1000), 3, '0')
            || right(gen_random_uuid()::text, 17)
        )::uuid
        from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as microseconds) c
    );
