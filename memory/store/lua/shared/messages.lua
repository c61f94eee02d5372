-- Appends and erases the messages of a conversation and their vectors. Is loaded after `scope`.

-- The first eight pairs keep this order: other scripts read them by position.
local function columns_of(message, exchange)
  local columns = {'x', exchange, 'r', message.role, 't', message.text, 's', message.sent_at,
    'i', message.sender_id, 'n', message.sender_name, 'm', message.message_ids, 'k', message.tokens}
  for _, each in ipairs({{'f', message.forwarded_from}, {'d', message.forwarded_at}, {'u', message.unseen},
    {'l', message.lengths}, {'p', message.replied_to}, {'w', message.used}, {'h', message.photo}, {'a', message.album},
    {'e', message.edited_at}}) do
    if each[2] then
      columns[#columns + 1] = each[1]
      columns[#columns + 1] = each[2]
    end
  end
  return columns
end

-- Appends messages to the log after sequence `seq`. Returns the sequence of the first one, or 0 if there are none, and of
-- the last one, which the caller writes to META as `next_seq`.
-- `generation` is the time of a conversation's first message in ms, or of a clear before that. When a conversation has
-- expired, its sequences and epochs start again; other scopes tell the old one from the new one by this time. Work items do
-- not expire with it: to the sequence of an old one EXPIRED is added, because no message has such a number.
local EXPIRED = 1e15
local function append(messages, exchange, seq)
  local first
  for _, message in ipairs(messages) do
    seq = seq + 1
    first = first or seq
    if seq == 1 then
      redis.call('HSETNX', META, 'generation', whole(1000 * message.sent_at))
      for _, id in ipairs(redis.call('HKEYS', WORK)) do
        local person, of, rest = string.match(redis.call('HGET', WORK, id), '^(%-?%d+|)(%d+)(|.*)$')
        if tonumber(of) > 0 and tonumber(of) < EXPIRED then
          redis.call('HSET', WORK, id, person .. whole(EXPIRED + tonumber(of)) .. rest)
        end
      end
    end
    redis.call('XADD', LOG, whole(seq) .. '-0', unpack(columns_of(message, exchange)))
  end
  return first or 0, seq
end

-- Writes a stream again without its deleted entries. Redis keeps the bytes of a deleted entry, in memory and
-- in its files, while neighbors in the same node stay. `instead` maps an entry id to its new fields.
local function leave_no_bytes(key, instead)
  local entries, ttl = redis.call('XRANGE', key, '-', '+'), redis.call('PTTL', key)
  redis.call('UNLINK', key)
  for _, entry in ipairs(entries) do
    local fields = instead and instead[entry[1]] or entry[2]
    redis.call('XADD', key, entry[1], unpack(fields))
  end
  if ttl > 0 then redis.call('PEXPIRE', key, ttl) end
end

-- Erases entries of a stream by their sequences, and with `kept` all before that id; returns how many. `instead` is as in
-- `leave_no_bytes`.
local function erase(stream, numbers, instead, kept)
  local erased = kept and redis.call('XTRIM', stream, 'MINID', kept) or 0
  for _, number in ipairs(numbers) do erased = erased + redis.call('XDEL', stream, number .. '-0') end
  if erased > 0 or (instead and next(instead)) then leave_no_bytes(stream, instead) end
  return erased
end

-- Erases messages with their vectors, and with `kept` all before that id; returns how many of both. Their work items stay
-- (see `drop_work_of`), because a commit also erases messages that only left the window while memory is off.
local function erase_messages(seqs, kept) return erase(LOG, seqs, nil, kept), erase(VEC, seqs, nil, kept) end

-- Returns the sequences of a stream from an id on; with '(' before the id, those after it.
local function ids_from(stream, id)
  local ids = {}
  for i, row in ipairs(redis.call('XRANGE', stream, id, '+')) do ids[i] = string.match(row[1], '^%d+') end
  return ids
end
