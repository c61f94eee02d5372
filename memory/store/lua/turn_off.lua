-- Uses: scope
-- ARGV[1], a JSON object: `ttl_s`. From now on nothing is learned, and messages are kept only as long as the window may show them.
redis.call('HSETNX', META, 'off_at', redis.call('HGET', META, 'next_seq') or '0')
touch(cjson.decode(ARGV[1]).ttl_s)
return 'ok'
