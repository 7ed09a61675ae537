/** Types of segments: PT_LOAD, PT_INTERP. */
const loadSegment = 1;
const interpreterSegment = 3;

interface ElfSegment {
  readonly type: number;
  readonly offset: number;
  readonly size: number;
}

/**
 * Returns a program (64-bit little-endian ELF) without the parts that only debuggers and linkers read: the bytes after its last segment, and
 * the table of sections. strip(1) is not used, since it might make other bytes on another machine. @throws RangeError for any other file
 */
export function stripProgram(program: Buffer): Buffer {
  const end = Math.max(...segmentsOf(program).map(({ offset, size }) => offset + size));
  const stripped = Buffer.from(program.subarray(0, end));
  // e_shoff, e_shnum, e_shstrndx of the file header
  stripped.writeBigUInt64LE(0n, 40);
  stripped.writeUInt16LE(0, 60);
  stripped.writeUInt16LE(0, 62);
  return stripped;
}

/** The path of a program's loader (PT_INTERP); undefined for a static program. @throws RangeError as stripProgram does */
export function interpreterOf(program: Buffer): string | undefined {
  const segment = segmentsOf(program).find(({ type }) => type === interpreterSegment);
  return segment && program.toString("latin1", segment.offset, segment.offset + segment.size - 1);
}

function segmentsOf(program: Buffer): ElfSegment[] {
  const isElf64 = program.length > 64 && program.readUInt32BE(0) === 0x7f454c46 && program.readUInt16BE(4) === 0x0201;
  if (!isElf64) throw new RangeError("not a 64-bit little-endian ELF program");
  const table = Number(program.readBigUInt64LE(32));
  const size = program.readUInt16LE(54);
  const segments = Array.from({ length: program.readUInt16LE(56) }, (_, index) => {
    const at = table + index * size;
    return {
      type: program.readUInt32LE(at),
      offset: Number(program.readBigUInt64LE(at + 8)),
      size: Number(program.readBigUInt64LE(at + 32)),
    };
  });
  if (!segments.some(({ type }) => type === loadSegment)) throw new RangeError("an ELF file without segments");
  return segments;
}
