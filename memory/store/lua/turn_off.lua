-- Uses: scope
-- ARGV: ttl in s. From now on nothing is learned, and messages are kept only as long as the window may show them.
redis.call('HSETNX', META, 'off_at', redis.call('HGET', META, 'next_seq') or '0')
touch(ARGV[1])
return 'ok'
