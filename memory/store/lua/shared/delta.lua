-- Reads what is new in a scope. `cursor` has the newest `record` and `record_vector` that the caller has, the
-- versions under which it read them, and the `revision` up to which it has all that was learned; if something was erased
-- since, all is read again. What it leaves out is 0.
-- If it has `message`, messages are read, too, and their vectors after `message_vector`. At most `max` entries of
-- each stream are read. `meta` lists what `read_meta` has answered for `DELTA_FIELDS`, if the caller has read them.
-- Answers a list: a JSON object with the versions and the lengths, without those that are 0; then the fields, the
-- records and their vectors (oldest first); then the messages (newest first) and their vectors. If nothing was learned
-- since the caller's revision, the object has no `records`. The lengths are -1 if the caller has all messages and vectors.
-- Returns also the session off the record, as `off_record` takes it.
local DELTA_FIELDS = {'generation', 'session', 'vector_fingerprint', 'record_vector_fingerprint', 'off_at',
  'off_record', 'revision', 'next_seq', 'next_record'}

local function read_delta(cursor, max, meta)
  local function newer(stream, known, newest)
    return known < newest and redis.call('XRANGE', stream, '(' .. known .. '-0', '+', 'COUNT', max) or {}
  end
  local function sizes(stream, newest, vectors, fingerprint)
    local length = newest > 0 and redis.call('XLEN', stream) or 0
    local vectors_length = length > 0 and redis.call('XLEN', vectors) or 0
    return {length = length > 0 and length or nil, vectors_length = vectors_length > 0 and vectors_length or nil,
      fingerprint = fingerprint or nil}
  end
  local epoch, erasure, _, _, generation, session, of_messages, of_records, off_at, off_session,
    revision, next_seq, next_record = unpack(meta or {read_meta(unpack(DELTA_FIELDS))})
  epoch, erasure, revision = epoch or '0', erasure or '0', tonumber(revision)
  next_seq, next_record = tonumber(next_seq or 0), tonumber(next_record or 0)
  local is_stale = (cursor.epoch or '0') ~= epoch or (cursor.erasure or '0') ~= erasure
  local function known(name) return is_stale and 0 or tonumber(cursor[name] or 0) end
  local head = {epoch = epoch, erasure = erasure, generation = tonumber(generation),
    session = tonumber(session), is_off = off_at and true or nil, revision = revision}
  local answer = {'', {}, {}, {}}
  if known('revision') ~= revision then
    head.records = sizes(RECORDS, next_record, RVEC, of_records)
    answer[2] = redis.call('HGETALL', LEARNED)
    answer[3] = newer(RECORDS, known('record'), next_record)
    answer[4] = newer(RVEC, known('record_vector'), next_record)
  end
  if cursor.message and next_seq > 0 and math.min(known('message'), known('message_vector')) == next_seq then
    head.messages = {length = -1, vectors_length = -1, fingerprint = of_messages or nil}
    answer[5], answer[6] = {}, {}
  elseif cursor.message then
    head.messages = sizes(LOG, next_seq, VEC, of_messages)
    answer[5] = known('message') < next_seq
      and redis.call('XREVRANGE', LOG, '+', '(' .. known('message') .. '-0', 'COUNT', max) or {}
    answer[6] = newer(VEC, known('message_vector'), next_seq)
  end
  answer[1] = cjson.encode(head)
  return answer, off_session or ''
end
