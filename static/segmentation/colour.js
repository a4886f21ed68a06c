// Colours of the layers: cividis for 0..1, grey for entropy, blue and orange for errors.

// Cividis (Nuñez, Anderton and Renslow 2018), 256 colours, red green blue in hex.
const CIVIDIS =
  "00224e00234f00245100255300255400265600275800285900285b00295d002a5f002a61002b62002c64" +
  "002c66002d68002e6a002e6c002f6d00306f0030700031700031710132710533710833700c34700f3570" +
  "12357014367016377018376f1a386f1c396f1e3a6f203a6f213b6e233c6e243c6e263d6e273e6e293f6e" +
  "2a3f6d2b406d2d416d2e416d2f426d31436d32436d33446d34456c35456c36466c38476c39486c3a486c" +
  "3b496c3c4a6c3d4a6c3e4b6c3f4c6c404c6c414d6c424e6c434e6c444f6c45506c46516c47516c48526c" +
  "49536c4a536c4b546c4c556c4d556c4e566c4f576c50576c51586d52596d535a6d545a6d555b6d555c6d" +
  "565c6d575d6d585e6d595e6e5a5f6e5b606e5c616e5d616e5e626e5e636f5f636f60646f61656f62656f" +
  "636670646770656870656870666970676a71686a71696b716a6c716b6d726c6d726c6e726d6f726e6f73" +
  "6f70737071737172747272747273747374757474757575757676767777767777777878777979777a7a78" +
  "7b7a787c7b787d7c787e7c787e7d787f7e78807f78817f78828079838179848279858279868379878478" +
  "8885788985788a86788b87788c88788d88788e89788f8a78908b78918b78928c78928d78938e78948e77" +
  "958f779690779791779892779992779a93769b94769c95769d95769e96769f9775a09875a19975a29975" +
  "a39a74a49b74a59c74a69c74a79d73a89e73a99f73aaa073aba072aca172ada272aea371afa471b0a571" +
  "b1a570b3a670b4a76fb5a86fb6a96fb7a96eb8aa6eb9ab6dbaac6dbbad6dbcae6cbdae6cbeaf6bbfb06b" +
  "c0b16ac1b26ac2b369c3b369c4b468c5b568c6b667c7b767c8b866c9b965cbb965ccba64cdbb63cebc63" +
  "cfbd62d0be62d1bf61d2c060d3c05fd4c15fd5c25ed6c35dd7c45cd9c55cdac65bdbc75adcc859ddc858" +
  "dec958dfca57e0cb56e1cc55e2cd54e4ce53e5cf52e6d051e7d150e8d24fe9d34eead34cebd44bedd54a" +
  "eed649efd748f0d846f1d945f2da44f3db42f5dc41f6dd3ff7de3ef8df3cf9e03afbe138fce236fde334" +
  "fee434fee535fee636fee838";

/** Pack red, green, blue and alpha (0..255) as canvas pixels want them (little-endian). */
export function packed(red, green, blue, alpha = 255) {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Return the 256 packed colours of probability. */
export function probabilityColours() {
  const colours = new Uint32Array(256);
  for (let k = 0; k < 256; k += 1) {
    const value = parseInt(CIVIDIS.slice(6 * k, 6 * k + 6), 16);
    colours[k] = packed(value >> 16, (value >> 8) & 255, value & 255);
  }
  return colours;
}

/** Return the entropy in bits of a binary variable with this probability. */
export function entropyBits(probability) {
  if (probability <= 0 || probability >= 1) return 0;
  const rest = 1 - probability;
  return -(probability * Math.log2(probability) + rest * Math.log2(rest));
}

/** Return 256 packed greys: entry k is the entropy of probability k / 255, white at one bit. */
export function entropyColours() {
  const colours = new Uint32Array(256);
  for (let k = 0; k < 256; k += 1) {
    const grey = Math.round(255 * entropyBits(k / 255));
    colours[k] = packed(grey, grey, grey);
  }
  return colours;
}

/** Draw the scale of 0..1: 1 at the top, or at the right when the bar lies. */
export function drawColourBar(canvas, kind, lies) {
  canvas.width = lies ? 256 : 1;
  canvas.height = lies ? 1 : 256;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  const words = new Uint32Array(pixels.data.buffer);
  const colours = probabilityColours();
  for (let at = 0; at < 256; at += 1) {
    const level = lies ? at : 255 - at;
    words[at] = kind === "entropy" ? packed(level, level, level) : colours[level];
  }
  context.putImageData(pixels, 0, 0);
}
