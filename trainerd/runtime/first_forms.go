package runtime

// The first forms of ops, whose handles are references to strings, as graphs of
// the first releases have them. They do the same as those that end in V2.
var _ = register(opTable{
	"FIFOQueue":          {build: buildQueue},
	"PaddingFIFOQueue":   {build: buildQueue},
	"PriorityQueue":      {build: buildQueue},
	"RandomShuffleQueue": {build: buildQueue},
	"QueueEnqueue":       {in: "resource any...", flags: stateful | blocking, build: noOutput(simple(enqueue))},
	"QueueEnqueueMany":   {in: "resource any...", flags: stateful | blocking, build: noOutput(simple(enqueueMany))},
	"QueueDequeue":       {in: "resource", flags: stateful | blocking, build: buildDequeue},
	"QueueDequeueMany":   {in: "resource int32", flags: stateful | blocking, build: buildDequeueMany(false)},
	"QueueDequeueUpTo":   {in: "resource int32", flags: stateful | blocking, build: buildDequeueMany(true)},
	"QueueClose":         {in: "resource", flags: stateful, build: buildQueueClose},
	"QueueSize":          {in: "resource", flags: stateful, build: simple(queueSize)},
	"QueueIsClosed":      {in: "resource", flags: stateful, build: simple(queueIsClosed)},

	"TFRecordReader":              {build: buildReader(openRecords)},
	"TextLineReader":              {build: buildReader(openLines)},
	"WholeFileReader":             {build: buildReader(openWhole)},
	"FixedLengthRecordReader":     {build: buildReader(openFixed)},
	"IdentityReader":              {build: buildReader(openIdentity)},
	"ReaderRead":                  {in: "resource resource", flags: stateful | blocking, build: buildRead},
	"ReaderReadUpTo":              {in: "resource resource int64", flags: stateful | blocking, build: buildReadUpTo},
	"ReaderNumRecordsProduced":    {in: "resource", flags: stateful | blocking, build: readerCount(func(r *reader) int { return r.records })},
	"ReaderNumWorkUnitsCompleted": {in: "resource", flags: stateful | blocking, build: readerCount(func(r *reader) int { return r.completed })},
	"ReaderReset":                 {in: "resource", flags: stateful | blocking, build: noOutput(simple(resetReader))},

	"HashTable":                   {build: buildTable},
	"MutableHashTable":            {build: buildTable},
	"LookupTableFind":             {in: "resource Tin Tout", flags: stateful, build: simple(tableFind)},
	"LookupTableInsert":           {in: "resource Tin Tout", flags: stateful, build: noOutput(simple(tableInsert))},
	"LookupTableImport":           {in: "resource Tin Tout", flags: stateful, build: noOutput(simple(tableImport))},
	"LookupTableSize":             {in: "resource", flags: stateful, build: simple(tableSize)},
	"InitializeTable":             {in: "resource Tkey Tval", flags: stateful, build: noOutput(simple(tableImport))},
	"InitializeTableFromTextFile": {in: "resource string", flags: stateful, build: noOutput(buildTableFromFile)},
})
