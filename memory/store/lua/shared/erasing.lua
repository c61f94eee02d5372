-- What scripts that erase have in common. Is loaded after `scope`, `messages` and `work`.

-- A receipt is kept for an hour, so that a repeated call gets the same answer: `done|<counts>`. `ask` says what happens
-- above 1,000. If the erasure answered a question, `|<kind>|<who was asked>` follows.
-- Returns the counts if there is a receipt, and what is stored.
local function receipt_of(id)
  local found = redis.call('HGET', CONFIRM, id)
  return found and string.match(found, '^done|([^|]*)'), found
end

-- `counts` has how many messages, vectors and waiting messages were erased, how many messages wait still, and how many
-- records were erased (`Receipt`). Returns the stored form.
local function keep_receipt(id, counts)
  local receipt = table.concat(counts, ',')
  local asked = string.match(redis.call('HGET', CONFIRM, id) or '', '^%a+|%-?%d+')
  ask({[id] = 'done|' .. receipt .. (asked and '|' .. asked or '')})
  return receipt
end

-- Removes keys of another type than ours. They hold nothing that an erasure could find, but it would fail at them, and a job
-- would never get to the conversations behind this one. Without META the epoch is the current time, as in `number_on`.
local function drop_damaged()
  local function check(keys, command, ...)
    for _, key in ipairs(keys) do
      if type(redis.pcall(command, key, ...)) == 'table' then -- an error
        redis.call('UNLINK', key)
        redis.call('HDEL', META, 'expiring') -- a clear may be refused after this, and then voids no note
        if key == META then redis.call('HSET', META, 'epoch', whole(now_ms())) end
      end
    end
  end
  check({META, TURN, CONFIRM, LEARNED, DEAD_LETTERS, WORK}, 'HEXISTS', '')
  check({MAILBOX, SEEN, ALBUMS}, 'ZCARD')
  check({LOG, VEC, RECORDS, RVEC, OFF_RECORD}, 'XLEN')
end

-- Erases the work items that messages asked for: those in `seqs`, and with `first_kept` all before that sequence. Call it
-- before the messages go. An item names its turn's first message, but any user message of the exchange may have asked for
-- it.
local function drop_work_of(seqs, first_kept)
  if #seqs == 0 and not first_kept then return end
  local function asked_in(seq)
    local id = whole(seq) .. '-0'
    local found = redis.call('XRANGE', LOG, id, id)[1]
    if not found then return whole(seq) end
    local fields = found[2]
    for i = 1, #fields, 2 do fields[fields[i]] = fields[i + 1] end
    return fields.r == 'user' and 'x' .. fields.x or whole(seq)
  end
  local goes -- read when there is an item
  drop_work(function(_, seq)
    if not goes then
      goes = {}
      for _, each in ipairs(seqs) do goes[asked_in(each)] = true end
    end
    return first_kept and (seq < first_kept or seq > EXPIRED) or next(goes) and goes[asked_in(seq)]
  end)
end

-- After an erasure the holder of the lease must load the conversation again, because it has read what is now
-- erased. This does not count as a failed attempt. If it was being set aside as a dead letter, it is tried again.
local function begin_again()
  if redis.call('DEL', LEASE) == 1 then signal() end
  drop_letter(redis.call('HGET', TURN, 'id') or '')
  redis.call('HDEL', TURN, 'outbox', 'sending', 'sent')
  if redis.call('HEXISTS', TURN, 'attempts') == 1 then redis.call('HSET', TURN, 'attempts', 0) end
  redis.call('HINCRBY', META, 'erasure', 1)
  expiry = nil
end

-- Removes the dead letters up to an update, of `sender` or of all; returns how many messages they had.
local function drop_letters(last_update, sender)
  local dropped = 0
  for _, letter in ipairs(dead_letters()) do
    local is_old = last_update == '+inf' or tonumber(letter.id) <= tonumber(last_update) or is_long_ago(letter.at)
    if is_old and (not sender or sender == letter.sender) then
      dropped = dropped + #drop_letter(letter.id)
    end
  end
  return dropped
end

-- Erases the questions that hold words, of one person or of everybody: whether a tool may run, and whether something
-- is imported. One is `tool|<who was asked>|<JSON>` or `import|<who was asked>|<JSON>`. `keeps` is the kind that stays.
local function drop_questions_with_words(person, keeps)
  for _, field in ipairs(redis.call('HKEYS', CONFIRM)) do
    local kind, asked = string.match(redis.call('HGET', CONFIRM, field), '^(%a+)|(%-?%d+)|')
    local has_words = (kind == 'tool' or kind == 'import') and kind ~= keeps
    if has_words and asked == (person or asked) then redis.call('HDEL', CONFIRM, field) end
  end
end

-- Ends the operator's permission to look. The update that gave it stays known, so that a repeat of it gives nothing.
local function end_look()
  local newest = string.match(redis.call('HGET', META, 'look') or '', '^(%d+)|')
  if newest then redis.call('HSET', META, 'look', newest .. '|0') end
end

-- Erases all content, or with `kept` only what is before that message. Fence, sequences and seen updates stay; epoch and
-- erasure version grow. Waiting messages up to `last_update` are erased, and intake drops such messages for as long as it
-- knows update ids; '+inf' erases all that wait and sets no new limit for intake. `kept` is the id of the first message
-- that stays, or nil; `gone` has the sequences of later messages that are erased, too. Returns the counts of a receipt.
local function wipe(last_update, kept, gone)
  local messages, vectors
  if kept then
    drop_work_of(gone, tonumber(string.match(kept, '^%d+')))
    messages, vectors = erase_messages(gone, kept)
  else
    messages, vectors = redis.call('XLEN', LOG), redis.call('XLEN', VEC)
    redis.call('UNLINK', LOG, VEC, WORK)
    redis.call('HSETNX', META, 'generation', whole(now_ms())) -- so that facts from before an expiry go, too
    redis.call('HDEL', META, 'vector_fingerprint', 'session', 'lexical_only', 'dropped_vectors', 'dropped_messages')
  end
  local records = redis.call('XLEN', RECORDS)
  redis.call('UNLINK', LEARNED, RECORDS, RVEC, OFF_RECORD, ALBUMS)
  redis.call('HDEL', META, 'off_record_said', 'record_vector_fingerprint')
  end_look()
  drop_questions_with_words()
  if redis.call('DEL', LEASE) == 1 then signal() end
  redis.call('DEL', TURN)
  local waiting = redis.call('ZREMRANGEBYSCORE', MAILBOX, '-inf', last_update) + drop_letters(last_update)
  redis.call('HINCRBY', META, 'epoch', 1)
  redis.call('HINCRBY', META, 'erasure', 1)
  expiry = nil
  local before, cut_at = unpack(redis.call('HMGET', META, 'cut_update', 'cut_at'))
  if last_update ~= '+inf' and (tonumber(last_update) > tonumber(before or '-inf') or is_long_ago(cut_at)) then
    redis.call('HSET', META, 'cut_update', last_update, 'cut_at', whole(now_ms()))
  end
  return {messages, vectors, waiting, redis.call('ZCARD', MAILBOX), records}
end
