/** The guests' reviews: examples in our own words, and a seeded choice, so that a link brings the same crowd. */

export const EXAMPLES = [
  "단팥빵 사러 삼십 분을 걸어갔는데 문 앞에서 품절 안내를 봤어요",
  "주차 자리가 두 칸뿐이라 골목을 세 바퀴 돌았습니다",
  "사장님이 우산을 빌려주셔서 비 오는 날이 따뜻해졌어요",
  "맛은 좋은데 둘이 먹기엔 양이 조금 아쉽네요",
  "점심시간 줄이 모퉁이까지 이어져서 결국 옆집으로 갔어요",
  "키오스크가 자꾸 처음 화면으로 돌아가서 주문을 네 번 했습니다",
  "창가 자리에서 강이 다 보여요, 해 질 때 가세요",
  "배달이 한 시간 넘게 걸려서 면이 다 불었어요",
  "가격이 또 올랐지만 재료를 보면 이해는 됩니다",
  "아이 의자와 작은 포크까지 챙겨 주셔서 편하게 먹었어요",
  "테이블이 끈적하고 물컵에 립스틱 자국이 있었습니다",
  "디카페인도 원두를 골라 주문할 수 있어서 좋았어요",
  "The cinnamon rolls were gone by ten, come early or go home sad",
  "옆 테이블 소리가 그대로 들려서 이야기하기 힘들었어요",
  "비건 메뉴 표시가 또렷해서 처음으로 고르는 재미가 있었습니다",
  "쿠폰이 앱에는 있는데 계산대에서는 안 된다고 하네요",
  "회가 정말 싱싱하고 밥알이 하나하나 살아 있어요",
  "포장이 꼼꼼해서 국물이 한 방울도 새지 않았습니다",
  "지하철 출구에서 오 분이라더니 언덕을 이십 분 올랐어요",
  "환불을 부탁했더니 영수증도 안 보고 바로 해 주셨습니다",
  "음식은 앉자마자 나오는데 직원분 표정이 너무 무거워요",
  "메뉴판이 책 한 권이라 고르는 데만 십 분 걸렸어요",
  "Kind staff, slow kitchen, and the best mushroom soup in town",
  "강아지와 함께 앉을 자리가 있어서 매주 오게 됩니다",
  "화장실이 깨끗하고 손 세정제까지 채워져 있었어요",
  "예약하고 갔는데도 이십오 분을 서서 기다렸습니다",
  "소금빵은 식어도 바삭해요, 다음 날 아침이 더 맛있습니다",
  "혼자 온 손님은 받지 않는다고 해서 돌아섰어요",
  "No parking at all, but the bus stops right in front of the door",
  "땅콩 알레르기가 있다고 하니 주방에서 직접 나와 설명해 주셨어요",
  "음악이 조금만 작으면 책 읽기에 완벽한 곳입니다",
  "직원이 바뀐 뒤로 국물 맛이 묽어졌어요, 다시 안 갈 듯합니다",
  "둘째 주 수요일마다 반값이라는데 벽에만 적혀 있네요",
  "They split the bill five ways without a sigh",
  "부모님 모시고 갔더니 조용한 안쪽 방을 내주셨어요",
  "케이크 상자가 찌그러져 왔지만 전화하니 새로 보내 주셨습니다",
];

/** A small seeded generator (mulberry32): the same seed, the same crowd, on every machine. */
export function seeded(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let x = Math.imul(a ^ (a >>> 15), 1 | a);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * `n` different reviews for a seed. Past the examples, a guest writes two sentences: a text that comes
 * twice would be answered from the cache and would not be a crowd.
 */
export function choose(seed, n) {
  const random = seeded(seed);
  const bag = EXAMPLES.slice();
  for (let i = bag.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [bag[i], bag[j]] = [bag[j], bag[i]];
  }
  const all = bag.slice(0, n);
  for (let k = 0; all.length < n; k++) {
    all.push(`${bag[k % bag.length]}. ${bag[(k * 7 + 5) % bag.length]}.`);
  }
  return all;
}

/** One review per line, no empty ones, up to `limit`. */
export function fromTyped(text, limit) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, limit);
}
