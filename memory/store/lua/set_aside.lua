-- Uses: scope
-- ARGV[1], a JSON object: `token`, `epoch` and `erasure` of a step; `turn`, its id; `lease_ms`; `ttl_s`; `error`, the class of the
-- error; `max_letters`; `is_kept`, false for messages off the record; `questions` of the apology. ARGV[2]: the outbox with the apology. Then mailbox members as the letter is to have them.
-- Refused if another turn is open now: a call may come late.
-- Turns the messages of this turn into a dead letter, and gives the turn an outbox, in one step. A dead letter is a
-- field `<turn>` = `<ms>|<error>|<sender>`, and a field `<turn>:<update>` for each message.
local request = cjson.decode(ARGV[1])
local turn, from = redis.call('HGET', TURN, 'id'), '0'
if refused(request) or turn ~= request.turn then return 'refused' end
redis.call('HDEL', TURN, 'ballast')
local kept = {}
for at = 3, #ARGV do kept[(read_entry(ARGV[at]))] = ARGV[at] end
for id in string.gmatch(redis.call('HGET', TURN, 'taken') or '', '%-?%d+') do
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', MAILBOX, id, id)) do
    if request.is_kept then redis.call('HSET', DEAD_LETTERS, turn .. ':' .. id, kept[id] or member) end
    local _, sender = read_entry(member)
    from = sender or from
  end
end
if request.is_kept then redis.call('HSET', DEAD_LETTERS, turn, whole(now_ms()) .. '|' .. request.error .. '|' .. from) end
local letters = dead_letters()
while #letters > request.max_letters do drop_letter(table.remove(letters, 1).id) end
redis.call('EXPIRE', DEAD_LETTERS, request.ttl_s)
redis.call('HSET', TURN, 'outbox', ARGV[2], 'sending', 0, 'sent', '')
ask(request.questions)
redis.call('PEXPIRE', LEASE, request.lease_ms)
return 'ok'
