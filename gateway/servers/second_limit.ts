/** A limit per second; anything over it is dropped. */
export class SecondLimit {
  readonly #most: number;
  #second = 0;
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  allow(): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) this.#count = 0;
    this.#second = second;
    this.#count += 1;
    return this.#count <= this.#most;
  }
}
