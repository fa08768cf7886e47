/** One instruction of classic BPF (`struct sock_filter` of linux/filter.h). */
export interface BpfInstruction {
  readonly code: number;
  /** Instructions to skip if the comparison holds, and if it does not. */
  readonly jumpTrue: number;
  readonly jumpFalse: number;
  readonly value: number;
}

const LOAD_WORD = 0x20;
const JUMP = 0x05;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;
const INSTRUCTION_BYTES = 8;
/** The kernel refuses a longer program (BPF_MAXINSNS). */
const MOST_INSTRUCTIONS = 4_096;
const MOST_SKIPPED = 255;

/** Loads the 32-bit word at this offset of `struct seccomp_data`. */
export const load = (offset: number): BpfInstruction => plain(LOAD_WORD, offset);
/** Ends with this action. */
export const returns = (action: number): BpfInstruction => plain(RETURN, action);
/** Skips some instructions whatever is loaded. */
export const skip = (skipped: number): BpfInstruction => plain(JUMP, skipped);
/** Goes on with the next instruction if the loaded word equals the value; else skips some. */
export const unlessEqualSkip = (value: number, skipped: number): BpfInstruction => jump(JUMP_IF_EQUAL, value, skipped);
/** Goes on with the next instruction if the loaded word has any of the bits; else skips some. */
export const unlessAnyBitSkip = (bits: number, skipped: number): BpfInstruction => jump(JUMP_IF_ANY_BIT, bits, skipped);

/** The instructions as the kernel of a little-endian machine reads them. */
export function encodeProgram(instructions: readonly BpfInstruction[]): Buffer {
  if (instructions.length === 0 || instructions.length > MOST_INSTRUCTIONS) {
    throw new RangeError(`a filter has 1 to ${MOST_INSTRUCTIONS} instructions, not ${instructions.length}`);
  }
  const bytes = Buffer.alloc(instructions.length * INSTRUCTION_BYTES);
  for (const [at, { code, jumpTrue, jumpFalse, value }] of instructions.entries()) {
    bytes.writeUInt16LE(code, at * INSTRUCTION_BYTES);
    bytes.writeUInt8(jumpTrue, at * INSTRUCTION_BYTES + 2);
    bytes.writeUInt8(jumpFalse, at * INSTRUCTION_BYTES + 3);
    bytes.writeUInt32LE(value >>> 0, at * INSTRUCTION_BYTES + 4);
  }
  return bytes;
}

function plain(code: number, value: number): BpfInstruction {
  return { code, jumpTrue: 0, jumpFalse: 0, value };
}

function jump(code: number, value: number, skipped: number): BpfInstruction {
  if (skipped > MOST_SKIPPED) throw new RangeError(`a jump skips at most ${MOST_SKIPPED} instructions`);
  return { code, jumpTrue: 0, jumpFalse: skipped, value };
}
