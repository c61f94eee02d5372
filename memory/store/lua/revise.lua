-- Uses: scope, messages, work, erasing
-- ARGV[1]: a JSON object.
--   receipt: the id under which the receipt is kept, '' for none
--   ttl_s
--   epoch, erasure, newest, known: the versions, the newest record and the fields when this was decided
--   said: the newest message when this was decided; absent if it does not matter
--   messages: sequences to erase;  records: ids to erase
--   instead: id and kind of a record, and the number of the argument that holds its new content
--   reworded: those of them that have another text. Their vectors go, and all later ones, because vectors have no gaps
--   added: kind of a new entry, and the number of the argument that holds its content
--   fields: a field -> its new value ('' for none)
--   rewritten: `seq`, `text`, `tokens`, `lengths`, `edited_at` of a message that gets a new text; absent without one
--   entry: the number of the argument that holds an entry of the mailbox; the next one is its new form. Absent
--   without one. If the entry is gone or has changed, or one of `messages` was erased, nothing happens.
-- Answers a JSON object: `outcome`, and the counts of the receipt as `counts`. If this call has touched no other messages
-- than `messages`, and these are few, it has the new version as `erasure`.
local wanted = cjson.decode(ARGV[1])
local function outcome(why, counts, erasure) return cjson.encode({outcome = why, counts = counts, erasure = erasure}) end

local receipt = wanted.receipt ~= '' and receipt_of(wanted.receipt)
if receipt then return outcome('done', receipt) end
local epoch, erasure = versions()
local newest = last_of(RECORDS)
local newest_id = newest and number_of(newest) or '0'
if epoch ~= wanted.epoch or erasure ~= wanted.erasure or newest_id ~= wanted.newest then
  return outcome('stale')
end
local said = wanted.said and last_of(LOG)
if said and tonumber(number_of(said)) > tonumber(wanted.said) then return outcome('stale') end
-- A field that was written since might rest on what goes now.
local fields = redis.call('HGETALL', LEARNED)
for i = 1, #fields, 2 do
  if wanted.known[fields[i]] ~= fields[i + 1] then return outcome('stale') end
end

if wanted.entry then
  if not redis.call('ZSCORE', MAILBOX, ARGV[wanted.entry]) then return outcome('gone') end
  -- The entry would bring an erased question back.
  for _, seq in ipairs(wanted.messages) do
    local id = seq .. '-0'
    if #redis.call('XRANGE', LOG, id, id) == 0 then return outcome('gone') end
  end
end

-- Returns the fields of a message with another text, and with the numbers that belong to that text.
local function with_text(fields, message)
  local new = {t = message.text, k = message.tokens, l = message.lengths, e = message.edited_at}
  local changed, had_edit = {}, false
  for i = 1, #fields, 2 do
    changed[i], changed[i + 1] = fields[i], new[fields[i]] or fields[i + 1]
    had_edit = had_edit or fields[i] == 'e'
  end
  if new.e and not had_edit then changed[#changed + 1] = 'e'; changed[#changed + 1] = new.e end
  return changed
end

begin_again() -- first, because it frees before anything grows: a full Redis then accepts the rest
if #wanted.messages > 0 then drop_questions_with_words(nil, 'import') end -- a file is no message that is erased
local instead = {}
for _, record in ipairs(wanted.instead) do
  instead[record[1] .. '-0'] = {'k', record[2], 'j', ARGV[record[3]]}
end
drop_work_of(wanted.messages)
local messages, vectors = erase_messages(wanted.messages)
if wanted.rewritten then
  local id = whole(wanted.rewritten.seq) .. '-0'
  local found = redis.call('XRANGE', LOG, id, id)[1]
  if found then erase(LOG, {}, {[id] = with_text(found[2], wanted.rewritten)}) end
  vectors = vectors + erase(VEC, ids_from(VEC, id))
end
if wanted.entry then
  redis.call('ZREM', MAILBOX, ARGV[wanted.entry])
  redis.call('ZADD', MAILBOX, (read_entry(ARGV[wanted.entry])), ARGV[wanted.entry + 1])
end
local records = erase(RECORDS, wanted.records, instead)
erase(RVEC, wanted.records)
local first_reworded = math.huge
for _, id in ipairs(wanted.reworded) do first_reworded = math.min(first_reworded, id) end
if first_reworded < math.huge then erase(RVEC, ids_from(RVEC, whole(first_reworded) .. '-0')) end
for _, entry in ipairs(wanted.added) do
  local id = redis.call('HINCRBY', META, 'next_record', 1)
  redis.call('XADD', RECORDS, id .. '-0', 'k', entry[1], 'j', ARGV[entry[2]])
end
set_fields(wanted.fields)
count_revision()
touch(wanted.ttl_s)
local counts = {messages, vectors, 0, redis.call('ZCARD', MAILBOX), records}
local stored = wanted.receipt ~= '' and keep_receipt(wanted.receipt, counts) or table.concat(counts, ',')
return outcome('done', stored, not wanted.rewritten and #wanted.messages <= 100 and erasure + 1 or nil)
