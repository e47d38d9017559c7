// Pictures as the server sends them: bytes in base64, on a canvas.
import { h } from "./dom.js";

export const bytesOf = (text) => Uint8Array.from(atob(text), (mark) => mark.charCodeAt(0));

export function textOf(values) {
  let text = "";
  for (const one of values) text += String.fromCharCode(one);
  return btoa(text);
}

export function drawn(picture, label = "picture") {
  const canvas = h("canvas", { class: "pixels", width: picture.width, height: picture.height, role: "img", "aria-label": label });
  paintOn(canvas, picture);
  return canvas;
}

export function paintOn(canvas, picture, colour = (value) => [value, value, value]) {
  const values = bytesOf(picture.bytes), context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(picture.width, picture.height);
  for (let k = 0; k < picture.width * picture.height; k++) {
    const rgb = picture.channels === 3 ? [values[3 * k], values[3 * k + 1], values[3 * k + 2]] : colour(values[k]);
    image.data.set([...rgb, 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
}

export const heat = (value) => {
  const t = value / 255;
  return [Math.round(255 * Math.min(1, 1.6 * t)), Math.round(255 * Math.max(0, 1.5 * t - 0.45)), Math.round(90 * (1 - t) * Math.min(1, 3 * t) + 255 * Math.max(0, 3 * t - 2.2))];
};
