-- Uses: scope
-- ARGV[1], a JSON object: `stream`, 'messages' or 'records'; `epoch`, `erasure`; `fingerprint` of the model; `before`, the
-- fingerprint of the stored vectors when the batch was made; `after`, the last id that had a vector of the model then;
-- `ids`, ascending. The packed vectors of the ids follow as ARGV[2] and so on.
-- The vectors of a stream are of one model and have no gaps. The first batch of another model replaces all vectors.
-- A batch that does not continue what is stored is refused. Vectors of another length drop all: the model changed
-- behind its name.
-- Answers the new revision of the scope, for messages 0; or 'refused'.
local request = cjson.decode(ARGV[1])
local is_record = request.stream == 'records'
local ROWS, FINGERPRINT = VEC, 'vector_fingerprint'
if is_record then ROWS, FINGERPRINT = RVEC, 'record_vector_fingerprint' end
local epoch, erasure, _, _, fingerprint, revision = read_meta(FINGERPRINT, 'revision')
epoch, erasure = epoch or '0', erasure or '0'
if epoch ~= request.epoch or erasure ~= request.erasure then return 'refused' end
if fingerprint ~= request.fingerprint then
  if (fingerprint or '') ~= request.before then return 'refused' end
  if redis.call('UNLINK', ROWS) == 1 then -- also if META, which names their model, was lost
    redis.call('HDEL', META, 'expiring')
    expiry.expiring = ''
  end
  redis.call('HSET', META, FINGERPRINT, request.fingerprint)
end
local last = last_of(ROWS)
local last_id = last and tonumber(number_of(last)) or 0
if last_id < request.after then return 'refused' end
if last and #last[2][2] ~= #ARGV[2] then
  redis.call('UNLINK', ROWS)
  redis.call('HDEL', META, 'expiring')
  if is_record then count_revision() end
  return 'refused'
end
for i, id in ipairs(request.ids) do
  if id > last_id then redis.call('XADD', ROWS, id .. '-0', 'v', ARGV[i + 1]) end
end
if is_record then
  revision = revision_after(revision)
  redis.call('HSET', META, 'revision', whole(revision))
end
expire_with_scope(ROWS)
return is_record and revision or 0
