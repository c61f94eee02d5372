-- Uses: scope
-- ARGV: ttl s. From here on nothing is learned, and what is said is kept for the window only.
redis.call('HSETNX', META, 'off_at', redis.call('HGET', META, 'next_seq') or '0')
touch(ARGV[1])
return 'ok'
