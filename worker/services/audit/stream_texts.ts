/**
 * Texts as a body. The next one is made when the client has taken the last, so memory holds one. If making one fails, the
 * connection breaks: the client does not take a part for the whole. `onEnd` is called once at the end, however it comes.
 */
export function streamTexts(
  texts: AsyncGenerator<string, void>,
  onEnd: () => void = () => undefined,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      try {
        const next = await texts.next();
        if (next.done !== true) return controller.enqueue(encoder.encode(next.value));
      } catch (error) {
        onEnd();
        throw error;
      }
      onEnd();
      controller.close();
    },
    async cancel() {
      onEnd();
      await texts.return(undefined);
    },
  });
}
