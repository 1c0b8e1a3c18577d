/**
 * The file format safetensors: the length of a header in eight bytes, the header as JSON, and then the bytes of named
 * arrays. Models are published in it, and word vectors are kept in it.
 */
import { GatewayError } from '../../../base/errors.ts';
import { isObject, toObject } from '../../../base/objects.ts';

export interface Tensor {
  readonly type: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export interface TensorFile {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tensors: ReadonlyMap<string, Tensor>;
}

/** Bytes of one number, by type. */
const SIZES: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2, I8: 1, U8: 1, I32: 4, I64: 8 };

const LENGTH = 8;
const LONGEST_HEADER = 100_000_000;

/** Throws if the bytes are no such file. `name` is the file in messages. */
export function readTensors(bytes: Uint8Array, name: string): TensorFile {
  const fail = (why: string): never => {
    throw new GatewayError('config_invalid', `${name} is not a file in the format safetensors: ${why}.`);
  };
  if (bytes.length < LENGTH) fail('it is too short');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  if (length > LONGEST_HEADER || LENGTH + length > bytes.length) fail('its header is longer than the file');
  const header = toObject(parseHeader(bytes.subarray(LENGTH, LENGTH + length)) ?? fail('its header is no JSON'));
  const data = bytes.subarray(LENGTH + length);
  const tensors = new Map<string, Tensor>();
  for (const [key, value] of Object.entries(header)) {
    if (key === '__metadata__') continue;
    const { dtype, shape, data_offsets: offsets } = toObject(value);
    if (typeof dtype !== 'string' || !isCounts(shape) || !isCounts(offsets) || offsets.length !== 2)
      return fail(`"${key}" has no type, shape or place`);
    const [start, end] = offsets as [number, number];
    const size = SIZES[dtype];
    const count = shape.reduce((product, one) => product * one, 1);
    if (end > data.length || start > end || (size !== undefined && end - start !== count * size))
      return fail(`"${key}" does not have the size that its header says`);
    tensors.set(key, { type: dtype, shape, bytes: data.subarray(start, end) });
  }
  return { metadata: toObject(header.__metadata__), tensors };
}

function parseHeader(bytes: Uint8Array): unknown {
  try {
    const header: unknown = JSON.parse(Buffer.from(bytes).toString());
    return isObject(header) ? header : undefined;
  } catch {
    return undefined;
  }
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((one) => Number.isSafeInteger(one) && one >= 0);
}

/** The numbers of a tensor. Throws if their type is none that is known. */
export function numbersOf({ type, bytes }: Tensor): Float32Array {
  const size = SIZES[type];
  if (size === undefined)
    throw new GatewayError('config_invalid', `Numbers of the type ${type} cannot be read: use F32 or F16.`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read: Readonly<Record<string, (at: number) => number>> = {
    F64: (at) => view.getFloat64(at, true),
    F32: (at) => view.getFloat32(at, true),
    F16: (at) => fromHalf(view.getUint16(at, true)),
    BF16: (at) => fromBrain(view.getUint16(at, true)),
    I8: (at) => view.getInt8(at),
    U8: (at) => view.getUint8(at),
    I32: (at) => view.getInt32(at, true),
    I64: (at) => Number(view.getBigInt64(at, true)),
  };
  const one = read[type]!;
  const numbers = new Float32Array(bytes.length / size);
  for (let i = 0; i < numbers.length; i++) numbers[i] = one(i * size);
  return numbers;
}

/** Sixteen bits: a sign, five of the exponent, ten of the fraction. */
function fromHalf(bits: number): number {
  const sign = bits >>> 15 === 0 ? 1 : -1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1_023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1_024) * 2 ** (exponent - 15);
}

const BITS = new DataView(new ArrayBuffer(4));

/** The upper half of a number with 32 bits. */
function fromBrain(bits: number): number {
  BITS.setUint32(0, bits << 16);
  return BITS.getFloat32(0);
}

export function printTensors({ metadata, tensors }: TensorFile): Buffer {
  let place = 0;
  const described = [...tensors].map(([name, { type, shape, bytes }]) => {
    const start = place;
    place += bytes.length;
    return [name, { dtype: type, shape, data_offsets: [start, place] }] as const;
  });
  const json = JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(described) });
  // Other programs want the data at a multiple of eight.
  const header = Buffer.from(json + ' '.repeat((8 - (Buffer.byteLength(json) % 8)) % 8));
  const length = Buffer.alloc(LENGTH);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, ...[...tensors.values()].map(({ bytes }) => bytes)]);
}
