-- Uses: scope
-- ARGV[1], a JSON object: `since` and `until`, in ms; `ttl_s`. ARGV[2]: the mailbox member that ends the session when
-- its time is over. Begins a session off the record, or gives the one that lasts another end.
local request = cjson.decode(ARGV[1])
local since, ends_at = off_record()
if not since or ends_at <= now_ms() then
  since = request.since
  redis.call('UNLINK', OFF_RECORD)
  redis.call('HDEL', META, 'off_record_ended', 'off_record_said')
end
redis.call('HSET', META, 'off_record', whole(since) .. '|' .. whole(request['until']) .. '|' .. ARGV[2])
redis.call('PEXPIREAT', OFF_RECORD, whole(request['until']))
touch(request.ttl_s)
return 1
