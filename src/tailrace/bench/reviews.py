"""Example reviews, in words of our own: what a crowd says when nobody types anything."""

EXAMPLES = (
    "가격이 좀 비싸긴 한데 직원분이 친절했어요",
    "30분 줄 섰는데 단팥빵 품절이라고 해서 화났어요",
    "주차장이 좁아서 두 바퀴 돌다가 그냥 길에 댔습니다",
    "국물이 깊고 면발이 쫄깃해서 한 그릇 더 시켰어요",
    "음식이 나오기까지 사십 분, 결국 점심시간이 끝났네요",
    "창가 자리 전망이 좋아서 사진을 백 장은 찍은 듯",
    "아이 의자도 있고 직원분이 물티슈를 먼저 챙겨 주셨어요",
    "옆 테이블 소리가 너무 커서 대화를 거의 못 했습니다",
    "배달이 한 시간 걸렸는데 국은 다 식어서 왔어요",
    "쿠폰 쓰려고 했더니 행사가 어제 끝났다고 하네요",
    "비건 메뉴가 세 가지나 있어서 친구랑 편하게 먹었어요",
    "키오스크가 자꾸 멈춰서 주문만 십 분 걸렸습니다",
    "커피는 평범한데 디저트 종류가 정말 많아요",
    "화장실이 깨끗해서 믿음이 가는 집입니다",
    "회가 싱싱하고 양도 넉넉해서 다음 달에 또 가려고요",
    "역에서 걸어서 이 분, 길 찾기가 쉬웠어요",
    "환불해 달라고 했더니 전화를 세 번 돌리더군요",
    "포장이 꼼꼼해서 국물이 한 방울도 새지 않았어요",
    "자리가 좁아서 옆 사람 팔꿈치랑 계속 부딪혔어요",
    "사장님이 무뚝뚝한데 음식은 인심이 후합니다",
    "The noodles were great, but we waited almost an hour for a table.",
    "Friendly staff, tiny parking lot, and the cake was already sold out.",
    "Too loud to talk, yet the view over the river makes up for it.",
    "Portions are huge and the price is fair; we will come back with the kids.",
)


def reviews(count: int) -> list[str]:
    """`count` different reviews: the examples, numbered from the second time round on."""
    return [
        EXAMPLES[i % len(EXAMPLES)] + ("" if i < len(EXAMPLES) else f" ({i // len(EXAMPLES) + 1})")
        for i in range(count)
    ]
