-- ARGV: tag of the old chat's storage. Names it here; returns the mail that must go there.
if redis.call('HGET', META, 'moved_from') ~= ARGV[1] then
  redis.call('HINCRBY', META, 'epoch', 1)
  redis.call('HSET', META, 'moved_from', ARGV[1])
  redis.call('DEL', LEASE, TURN)
end
redis.call('PERSIST', META)
return redis.call('ZRANGE', MAILBOX, 0, -1)
