// Package found manages the checkpoints that another program writes into a logdir: it finds them,
// verifies them, makes them durable, deletes old ones and moves damaged ones out of the way. It
// knows nothing of processes: package child, which runs the program, passes in [Options] what the
// program has reported.
//
// # What a checkpoint is
//
// A [Store] has a pattern of file or folder names below the logdir. The step is the number after
// "step" in a name, or else the last one before the extension: ckpt-120.pt, epoch=3-step=120.ckpt,
// step_120/. Files of the same step are one checkpoint, such as model.ckpt-120.index and
// model.ckpt-120.data-00000-of-00001, which is then named model.ckpt-120. With alternatives in the
// pattern, {weights,optim}_*.npz, a checkpoint that lacks a file for one of them is not finished,
// unless two in a row lack the same one; if the names have no common prefix, it is named after the
// first file. Files without a step that match such a pattern are one checkpoint, too.
//
// # When it counts
//
// A checkpoint counts once it has stopped changing, is synced to the disk with its folders, is
// verified by package integrity, and has a [manifest.Record] in the folder [manifest.RecordsDir]:
// then it survives a crash at any later moment. It must have everything that the previous one has
// (trainer_state.json, _SUCCESS, an optimizer), unless the next one lacks it too. A later run
// compares checkpoints with their records: the newest byte by byte, unless the kernel says that
// nobody has written to it since it was verified, less than an hour ago; older ones by size and
// time until one of them is needed. If large archives or bundles are saved in quick succession, not
// every record has a SHA-256: the others are compared by the file's own checksums. A program that
// writes under a temporary name (beginning with "." or ending in .tmp, .part or ~) and renames the
// complete file is always safe.
//
// A raw file that is more than a tenth shorter than those of the first one or two checkpoints may
// have been cut short: its checkpoint counts once the program has gone past it.
//
// Steps may begin again with each epoch (epoch1/step20.pt), and a few names may take turns
// (slot_0.pt). If the names show that, or reports that rise while the numbers do not, checkpoints
// are distinguished by all numbers in their names, ordered by time, and have no step.
//
// If no checkpoint has a step, or there is a single name with a number, the program overwrites its
// only checkpoint. Then the folder [CopiesDir] has a copy of the last verified one, which replaces
// the checkpoint if a start finds it damaged.
//
// # Damage
//
// Before a start, damaged checkpoints that are newer than all verified ones are moved to
// the folder "damaged" below the logdir, so that a program that picks its own newest
// checkpoint finds one that it can load. A link to such a checkpoint, and a file that
// names it, as those of TensorFlow, DeepSpeed, detectron2 and Megatron-LM do, is changed
// first to name the newest verified one. A checkpoint that cannot be read for lack of
// permission, or because of the device, is not damaged: it stays, and does not count.
//
// # What stays
//
// [Options.Retention] decides which checkpoints are kept. The newest verified one always
// is, and so are those with a file NAME.pin next to them, and those that such a link or
// file names. Nothing outside the logdir is ever deleted, nor targets of symbolic links,
// nor a file without a step.
//
// A Store is for one goroutine, except for [Store.Verify], which may take long and does not change
// the Store.
package found
