-- KEYS[1]: the conversations in which a person wrote. ARGV[1], a JSON object: `conversation`; `last_update`, the update
-- id of the confirmation; `oldest_ms`, a time in Unix ms before which every value is older than the confirmation;
-- `newest`, what the conversation has noted as the person's newest update there after it was erased, '' for nothing.
-- ARGV[2]: the conversation's value as the caller read it.
-- Removes the conversation, unless the person wrote there since the caller read it or since the confirmation.
-- `spoke` writes the value as `<id>|<ms>`, which may be older than `newest`. A message that is appended without an update
-- writes a random value, which only shows that something was written.
local request = cjson.decode(ARGV[1])
local stamp = redis.call('HGET', KEYS[1], request.conversation)
if stamp ~= ARGV[2] then return 0 end
for _, written in ipairs({stamp, request.newest}) do
  local id, at = string.match(written, '^(%d+)|(%d+)$')
  if id and tonumber(id) > tonumber(request.last_update) and tonumber(at) > request.oldest_ms then return 0 end
end
return redis.call('HDEL', KEYS[1], request.conversation)
