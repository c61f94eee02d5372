-- Shared by every script of one conversation. KEYS stand in this order in all of them.
local META, LEASE, TURN, MAILBOX, SEEN, LOG, VEC, CONFIRM, LEARNED, RECORDS, RVEC, DEAD = unpack(KEYS)

local function versions()
  local found = redis.call('HMGET', META, 'epoch', 'erasure')
  return found[1] or '0', found[2] or '0'
end

-- A lease counts only while nothing was erased since its holder loaded.
local function refused(token, epoch, erasure)
  local current_epoch, current_erasure = versions()
  return redis.call('GET', LEASE) ~= token or current_epoch ~= epoch or current_erasure ~= erasure
end

-- What a refused holder is told: 'superseded' where the part that it has just sent stands, or may. For its
-- own step may have been carried out with the answer lost; else the part counts for nobody. `sent` ends
-- with that part where a step marks it, and is '' where a commit does. Of a turn that is gone nobody knows
-- here which parts count.
local function refusal(epoch, erasure, turn, sent)
  local current_epoch, current_erasure = versions()
  if current_epoch ~= epoch or current_erasure ~= erasure then return 'refused' end
  local open = redis.call('HMGET', TURN, 'id', 'sent')
  if open[1] ~= turn then return 'superseded' end
  local marked, last = ',' .. (open[2] or '') .. ',', string.match(sent, '%d+$')
  return last and string.find(marked, ',' .. last .. ',', 1, true) and 'superseded' or 'refused'
end

-- Whoever holds the lease has seen what is erased now and has to begin again, which is no failed try.
local function begin_again()
  redis.call('DEL', LEASE)
  redis.call('HDEL', TURN, 'outbox', 'sending', 'sent')
  if redis.call('HEXISTS', TURN, 'attempts') == 1 then redis.call('HSET', TURN, 'attempts', 0) end
  redis.call('HINCRBY', META, 'erasure', 1)
end

-- One expiry for the whole scope; an alias of a moved chat never expires, lease and nonces have their own.
-- An operator's documents stay until they are removed.
local function touch(ttl_s)
  if string.find(META, '{d:', 1, true) or redis.call('HEXISTS', META, 'moved_from') == 1 then return end
  for _, key in ipairs({META, TURN, MAILBOX, SEEN, LOG, VEC, LEARNED, RECORDS, RVEC, DEAD}) do
    redis.call('EXPIRE', key, ttl_s)
  end
end

-- Gives a field of what was learned a value, '' for none.
local function set_field(name, value)
  if value == '' then redis.call('HDEL', LEARNED, name) else redis.call('HSET', LEARNED, name, value) end
end

-- A mailbox member is `<update id>|<sender id>|<c for command, t for text>|<body>`.
local function read_entry(member)
  local id, sender, kind = string.match(member, '^(%-?%d+)|(%-?%d+)|(%a)|')
  return id, sender, kind
end

-- Messages come flat, seven arguments each, from ARGV[first]; returns the sequence of the first.
-- Once a conversation has expired, sequences and epochs begin anew; what outlives it in another scope
-- tells its lives apart by `generation`: when the first message was sent, in ms.
local function append(first, count, exchange)
  local start
  for i = 0, count - 1 do
    local at = first + i * 7
    local seq = redis.call('HINCRBY', META, 'next_seq', 1)
    start = start or seq
    if seq == 1 then redis.call('HSET', META, 'generation', whole(1000 * ARGV[at + 2])) end
    redis.call('XADD', LOG, seq .. '-0', 'x', exchange, 'r', ARGV[at], 't', ARGV[at + 1],
      's', ARGV[at + 2], 'i', ARGV[at + 3], 'n', ARGV[at + 4], 'm', ARGV[at + 5], 'k', ARGV[at + 6])
  end
  return start or 0
end

-- An erasure that was carried out answers its receipt again, so that repeating one counts the same. Behind
-- the receipt stands what was asked and whom, where there was a question: `done|<counts>|<kind>|<asker>`.
local function receipt_of(id)
  local found = redis.call('HGET', CONFIRM, id)
  return found and string.match(found, '^done|([^|]*)'), found
end

local function keep_receipt(id, counts)
  local receipt = table.concat(counts, ',')
  local asked = string.match(redis.call('HGET', CONFIRM, id) or '', '^%a+|%-?%d+')
  local done = 'done|' .. receipt .. (asked and '|' .. asked or '')
  redis.call('HSET', CONFIRM, id, done)
  redis.call('EXPIRE', CONFIRM, 3600)
  return receipt
end

-- A stream keeps the bytes of deleted entries, also in every file written of it, for as long as their
-- neighbours stay. So those that stay are added anew; `instead` has other fields for some, by id.
local function leave_no_bytes(key, instead)
  local kept, ttl = redis.call('XRANGE', key, '-', '+'), redis.call('PTTL', key)
  redis.call('UNLINK', key)
  for _, entry in ipairs(kept) do
    local fields = instead and instead[entry[1]] or entry[2]
    redis.call('XADD', key, entry[1], unpack(fields))
  end
  if ttl > 0 then redis.call('PEXPIRE', key, ttl) end
end

-- Mail that was set aside, oldest first; `set_aside` says what a letter is.
local function dead_letters()
  local letters = {}
  for _, field in ipairs(redis.call('HKEYS', DEAD)) do
    if not string.find(field, ':', 1, true) then
      local at, sender = string.match(redis.call('HGET', DEAD, field), '^(%d+)|[^|]*|(%-?%d+)$')
      letters[#letters + 1] = {id = field, at = tonumber(at), sender = sender}
    end
  end
  table.sort(letters, function(one, other) return one.at < other.at end)
  return letters
end

-- Removes one and returns its mail.
local function drop_letter(id)
  local mail = {}
  redis.call('HDEL', DEAD, id)
  for _, field in ipairs(redis.call('HKEYS', DEAD)) do
    if string.sub(field, 1, #id + 1) == id .. ':' then
      mail[#mail + 1] = redis.call('HGET', DEAD, field)
      redis.call('HDEL', DEAD, field)
    end
  end
  return mail
end

-- Removes those that were sent up to the cut, by one sender or by anybody; returns how many messages.
local function drop_letters(cut_update, sender)
  local dropped = 0
  for _, letter in ipairs(dead_letters()) do
    local is_old = cut_update == '+inf' or tonumber(letter.id) <= tonumber(cut_update)
    if is_old and (not sender or sender == letter.sender) then
      dropped = dropped + #drop_letter(letter.id)
    end
  end
  return dropped
end

-- Up to which update a person is forgotten here: the greatest counts.
local function cut_person(person, update)
  local before = string.match(redis.call('HGET', META, 'cut:' .. person) or '', '^(%d+)|')
  if tonumber(update) <= tonumber(before or '-inf') then return end
  redis.call('HSET', META, 'cut:' .. person, update .. '|' .. whole(now_ms()))
end

-- Erases all content, keeps what must outlive it: fence, epoch, erasure, sequence, seen. What was
-- sent up to the cut goes and is not taken in later; '+inf' takes what waits now and cuts off nothing.
-- `kept` is the id of the first message that stays, nil for none.
local function wipe(cut_update, kept)
  local counts = {redis.call('XLEN', LOG), redis.call('XLEN', VEC)}
  if kept then
    counts[1] = redis.call('XTRIM', LOG, 'MINID', kept)
    counts[2] = redis.call('XTRIM', VEC, 'MINID', kept)
    leave_no_bytes(LOG)
    leave_no_bytes(VEC)
  else
    redis.call('UNLINK', LOG, VEC)
    redis.call('HDEL', META, 'vector_fingerprint', 'session', 'lexical_only', 'dropped_vectors', 'dropped_messages')
  end
  counts[5] = redis.call('XLEN', RECORDS)
  redis.call('UNLINK', LEARNED, RECORDS, RVEC)
  redis.call('HDEL', META, 'record_vector_fingerprint')
  redis.call('DEL', LEASE, TURN)
  counts[3] = redis.call('ZREMRANGEBYSCORE', MAILBOX, '-inf', cut_update) + drop_letters(cut_update)
  redis.call('HINCRBY', META, 'epoch', 1)
  redis.call('HINCRBY', META, 'erasure', 1)
  local cut_before = redis.call('HGET', META, 'cut_update')
  if cut_update ~= '+inf' and tonumber(cut_update) > tonumber(cut_before or '-inf') then
    redis.call('HSET', META, 'cut_update', cut_update, 'cut_at', whole(now_ms()))
  end
  counts[4] = redis.call('ZCARD', MAILBOX)
  return counts
end
