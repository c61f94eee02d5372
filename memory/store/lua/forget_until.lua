-- KEYS[1]: the last update up to which a person is forgotten. ARGV: update id, for how many ms update ids ascend.
-- Answers 1, or 0 if a later forgetting has written a higher id.
if tonumber(redis.call('GET', KEYS[1]) or '-inf') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
