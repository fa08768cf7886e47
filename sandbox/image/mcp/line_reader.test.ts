import { describe, expect, it } from 'vitest';
import { LineReader } from './line_reader.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('lines', () => {
  it('end only at line feeds, and blank ones are skipped', () => {
    const reader = new LineReader(100);
    expect(reader.push(bytes('{"a":"\u2028"}\r\n\n  \n{"b"'))).toEqual(['{"a":"\u2028"}']);
    expect(reader.push(bytes(':1}\nrest'))).toEqual(['{"b":1}']);
    expect(reader.rest()).toBe('rest');
    expect(reader.rest()).toBe('');
  });

  it('may be split anywhere, even inside a character', () => {
    const reader = new LineReader(100);
    const lines = [...bytes('ä日\nb\n')].flatMap((byte) => reader.push(Uint8Array.of(byte)));
    expect(lines).toEqual(['ä日', 'b']);
  });

  it('that are too long are an error', () => {
    const reader = new LineReader(10);
    expect(reader.push(bytes('0123456789\n'))).toHaveLength(1);
    expect(() => reader.push(bytes('01234567890'))).toThrow('longer than 10 bytes');
  });
});
