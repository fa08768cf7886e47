interface RequestLimits {
  readonly minute: number | undefined;
  readonly day: number | undefined;
}

/** Each limit of a binding in words, such as `60 a minute`; `noun` stands after the number. */
export function listRequestLimits({ minute, day }: RequestLimits, noun = ''): readonly string[] {
  return [
    ...(minute === undefined ? [] : [`${minute}${noun} a minute`]),
    ...(day === undefined ? [] : [`${day}${noun} a day`]),
  ];
}
