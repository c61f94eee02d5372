-- Uses: scope, notes
-- ARGV: newest record and newest vector that the caller has, entries at most; then the versions under
-- which it has them: if something was erased since, all is read anew.
local epoch, erasure = versions()
local known_record, known_vector = ARGV[1], ARGV[2]
if epoch ~= ARGV[4] or erasure ~= ARGV[5] then known_record, known_vector = '0', '0' end
return {epoch, erasure, load_notes(known_record, known_vector, ARGV[3])}
