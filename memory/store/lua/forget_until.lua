-- KEYS: up to which update a person is forgotten. ARGV: update id, for how long ids ascend in ms.
-- An older forgetting that goes on later does not take a newer one back.
if tonumber(redis.call('GET', KEYS[1]) or '-inf') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
