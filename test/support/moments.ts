/** The highest number of these ordered moments within so many milliseconds. */
export function mostWithin(moments: readonly number[], milliseconds: number): number {
  let first = 0;
  return moments.reduce((most, at, index) => {
    while (at - (moments[first] ?? at) >= milliseconds) first++;
    return Math.max(most, index - first + 1);
  }, 0);
}
