-- Uses: scope
-- ARGV[1], a JSON object: `storage`, the tag under which the old chat is stored. Makes this conversation an alias
-- of it, and answers the mailbox members that must be put there. The alias does not expire, so it keeps no id of a person.
-- What was said and set here before is erased: nothing would show it any more, and no clear of the group would find it.
local request = cjson.decode(ARGV[1])
if redis.call('HGET', META, 'moved_from') ~= request.storage then
  redis.call('HINCRBY', META, 'epoch', 1)
  redis.call('HSET', META, 'moved_from', request.storage)
  redis.call('DEL', LEASE, TURN)
  redis.call('UNLINK', LOG, VEC, CONFIRM, LEARNED, RECORDS, RVEC, DEAD_LETTERS, WORK, OFF_RECORD, ALBUMS)
end
for _, field in ipairs(redis.call('HKEYS', META)) do
  if string.match(field, ':%-?%d+$') or field == 'off_record' then redis.call('HDEL', META, field) end
end
redis.call('PERSIST', META)
redis.call('ZADD', SEEN, whole(now_ms()), 'moved') -- so that intake can ask whether replicas have all this
redis.call('PEXPIRE', SEEN, 172800000) -- as long as ids of updates are remembered
return redis.call('ZRANGE', MAILBOX, 0, -1)
