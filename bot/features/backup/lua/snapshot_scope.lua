-- Uses: scope
-- ARGV[1], a JSON object without fields. Reads at one moment what a backup needs before it reads the streams.
-- Answers a list: a JSON object with the server's time `at` and the remaining time `ttl` of the scope, both in ms, and
-- the newest ids of the streams; then the fields of `meta`, of what was learned, and of the work items.
local function newest(stream)
  local entry = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  return entry and entry[1] or '0-0'
end
local function snapshot()
  local off_at = redis.call('HGET', META, 'off_at') -- what is said while memory is off is not kept for long
  local head = {at = now_ms(), ttl = redis.call('PTTL', META), log = off_at and off_at .. '-0' or newest(LOG),
    vectors = off_at and off_at .. '-0' or newest(VEC), records = newest(RECORDS), record_vectors = newest(RVEC)}
  return {cjson.encode(head), redis.call('HGETALL', META), redis.call('HGETALL', LEARNED), redis.call('HGETALL', WORK)}
end

-- A key of another type ends the backup of the whole bot, so say whose it is.
local is_read, answer = pcall(snapshot)
if is_read then return answer end
local why = type(answer) == 'table' and answer.err or answer
if not string.find(why, 'WRONGTYPE', 1, true) then return {err = why} end
return {err = 'ERR ' .. string.match(META, '{(.*)}') .. ' is damaged; /clear_memory erases it'}
