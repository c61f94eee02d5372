-- Uses: scope, messages, work, delta, interrupt, begin
-- Keys: meta, lease, turn, mailbox, seen, log, vec, learned, records, rvec, dead_letters, reminders, off_record
-- ARGV[1], a JSON object: `token`, `epoch`, `erasure` and `turn` of a step; `taken`, the update ids of its messages;
-- `ttl_s`; `ends_session`, if so; `digest`, a summary of the tool steps, if there is one; `work`: the items to add (id,
-- person, due in ms, JSON) and the ids of those to cancel, if there are any; `is_off_record`, if so; `messages`; and the
-- fields that `begin` reads.
-- ARGV[2]: what tools want written.
-- With `ends_session` the session ends before `messages`. With `is_off_record` as well, the words of the session off
-- the record are erased before they are kept, and the session of the conversation does not end.
-- Answers a JSON object with `outcome`, `exchange`, `first_seq` and `is_known`, if the caller has all that was learned
-- here and all messages but these; then the answer of `begin`.
-- If the answer of a call was lost, its repeat appends nothing and answers the same, or that the lease was lost
-- meanwhile.

-- Keeps messages of a session off the record until it ends, the newest ones; a session that is over takes none.
local function append_off_record(messages, tail)
  local _, ends_at = off_record()
  if not ends_at or ends_at <= now_ms() then return end
  for _, message in ipairs(messages) do
    local number = redis.call('HINCRBY', META, 'off_record_said', 1)
    redis.call('XADD', OFF_RECORD, 'MAXLEN', tail, number .. '-0', unpack(columns_of(message, 0)))
  end
  redis.call('PEXPIREAT', OFF_RECORD, whole(ends_at))
end

-- Returns those of the tools' writes that forget something, '' for none. While memory is off, only these are
-- kept. No statement can look like one, because its quotes are escaped.
local function only_forgets(writes)
  local found = {}
  for each in string.gmatch(writes, '%["forget",%d+[^%[%]"]*"?[%w_%-]*"?%]') do found[#found + 1] = each end
  return #found > 0 and '[' .. table.concat(found, ',') .. ']' or ''
end

-- While memory is off, only as many of the messages since then are kept as the window may show. This is not done in
-- every turn, because it rewrites all that stays.
local function forget_beyond_window(off_at, tail)
  local since = ids_from(LOG, '(' .. off_at .. '-0')
  if #since < tail * 1.5 then return end
  for _ = 1, tail do table.remove(since) end
  erase_messages(since)
end

local function committed(exchange, first_seq, begun, is_known)
  return {cjson.encode({outcome = 'committed', exchange = tonumber(exchange), first_seq = tonumber(first_seq),
    is_known = is_known or nil}), begun}
end

local request, writes = cjson.decode(ARGV[1]), ARGV[2]
local this_commit = request.turn .. '|' .. request.token
local turn_and_fence = request.turn .. '|' .. string.match(request.token, '^%d+') .. ','
local epoch, erasure, _, _, last, last_exchange, last_first, closed, off_at, exchanges, newest, revision = read_meta(
  'committed', 'committed_exchange', 'committed_first', 'closed', 'off_at', 'exchanges', 'next_seq', 'revision')
closed = closed or ','
if last == this_commit then
  -- The first call may have begun the next turn, so without the lease this call cannot say that nothing waits.
  local begun = no_turn('lost')
  if redis.call('GET', LEASE) == request.token then begun = begin(request.token, request, {}) end
  return committed(last_exchange, last_first, begun)
end
-- `closed` has turn and fence of the eight turns that were closed last.
if string.find(closed, ',' .. turn_and_fence, 1, true) then return {cjson.encode({outcome = 'superseded'})} end
epoch, erasure = epoch or '0', erasure or '0'
if refused(request, epoch, erasure) then
  -- If another holder closed the turn, it has sent the part in doubt again. Then ours does not count.
  local is_closed = string.find(closed, ',' .. request.turn .. '|', 1, true)
  return {cjson.encode({outcome = is_closed and 'refused' or refusal(request, '')})}
end
if not newest then newest, exchanges = number_on() end
exchanges, newest = tonumber(exchanges or 0), tonumber(newest or 0)
local taken, left, members = {}, 0, waiting()
for _, id in ipairs(request.taken) do taken[id] = true end
for _, member in ipairs(members) do left = left + (taken[read_entry(member)] and 0 or 1) end
-- Nothing else waits: what this turn leaves is deleted before anything is written, which also frees memory.
local is_last = left == 0 and #members < MAX_ENTRIES
if is_last then
  redis.call('DEL', MAILBOX, TURN, LEASE)
else
  for id in pairs(taken) do redis.call('ZREMRANGEBYSCORE', MAILBOX, id, id) end
end
local cursor = request.cursor
local is_known = not (off_at or request.ends_session or request.is_off_record)
  and (cursor.epoch or '0') == epoch and (cursor.erasure or '0') == erasure
  and cursor.message == newest and (cursor.revision or 0) == tonumber(revision or 0)
local exchange, first, count, written = 0, 0, #request.messages, {META}
if request.ends_session and request.is_off_record then
  redis.call('UNLINK', OFF_RECORD)
elseif request.ends_session then
  redis.call('HSET', META, 'session', whole(newest))
end
if request.is_off_record then
  append_off_record(request.messages, request.tail)
elseif count > 0 then
  exchange = exchanges + 1
  first, newest = append(request.messages, exchange, newest)
  written[1] = LOG
end
closed = string.match(closed .. turn_and_fence, ',' .. string.rep('[^,]*,', 8) .. '$') or closed .. turn_and_fence
local noted = {'committed', this_commit, 'committed_exchange', exchange, 'committed_first', first, 'closed', closed,
  'exchanges', whole(math.max(exchange, exchanges)), 'next_seq', whole(newest)}
if is_last then noted[#noted + 1], noted[#noted + 2] = 'wake_up', NO_LEASE end
redis.call('HSET', META, unpack(noted))
-- Learning needs these beside the messages, and removes them afterwards.
if request.digest and count > 1 and not off_at then
  redis.call('HSET', LEARNED, 'digest:' .. first + count - 1, request.digest)
  written[#written + 1] = LEARNED
end
if off_at then writes = only_forgets(writes) end
if writes ~= '' then
  redis.call('HSET', LEARNED, 'tool_writes:' .. request.turn, first .. '|' .. writes)
  written[#written + 1] = LEARNED
end
local added, cancelled = unpack(request.work or {{}, {}})
for _, item in ipairs(added) do
  local id, person, due, body = unpack(item)
  redis.call('HSET', WORK, id, work_of(person, first, due, body))
end
for _, id in ipairs(cancelled) do redis.call('HDEL', WORK, id) end
if written[#written] == LEARNED then
  count_revision()
  is_known = false
end
if off_at then forget_beyond_window(off_at, request.tail) end
if not have_expiry(written) then touch(request.ttl_s) end -- the intake of the messages has renewed those that exist
cursor.message = whole(newest)
local begun = is_last and no_turn('empty') or begin(request.token, request, {open = {request.turn}})
return committed(exchange, first, begun, is_known)
