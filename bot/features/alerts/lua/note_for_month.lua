-- KEYS[1]: says that operators were told. ARGV[1]: when it expires, a Unix time in seconds.
-- Deletes first, so that Redis carries it out even when it is full.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], 'reported', 'EXAT', ARGV[1])
return 'ok'
